export default function Search() {
  return (
    <div className="page">
      <h1>Search</h1>
    </div>
  );
}
