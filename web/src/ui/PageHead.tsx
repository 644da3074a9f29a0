import { Link } from "wouter";

/** A page's title; on a small screen with a link back to the sessions. */
export function PageHead({ title }: { title: string }) {
  return (
    <header className="page-head">
      <Link href="/" className="back" aria-label="Back to sessions">
        ‹
      </Link>
      <h1>{title}</h1>
    </header>
  );
}
