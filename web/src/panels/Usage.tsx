export default function Usage() {
  return (
    <div className="page">
      <h1>Usage</h1>
    </div>
  );
}
