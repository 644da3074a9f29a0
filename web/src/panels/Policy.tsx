export default function Policy() {
  return (
    <div className="page">
      <h1>Policy</h1>
    </div>
  );
}
