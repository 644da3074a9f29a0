import { ChevronLeft } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { text } from "../text";
import { css } from "./css";
import { Icon } from "./Icon";

/** A page's title, and what belongs beside it; on a small screen with a link back to the sessions. */
export function PageHead({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <header className={css.layout.pageHead}>
      <Link href="/" className={css.layout.back} aria-label={text.app.backToSessions}>
        <Icon of={ChevronLeft} size={20} />
      </Link>
      <h1>{title}</h1>
      {children}
    </header>
  );
}
