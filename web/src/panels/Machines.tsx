export default function Machines() {
  return (
    <div className="page">
      <h1>Machines</h1>
    </div>
  );
}
