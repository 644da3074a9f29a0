import { css } from "./css";
/** Why something failed, in words; nothing while there is no error. */
export function ErrorText({
  error,
  className = "",
}: {
  error: string | undefined;
  className?: string | undefined;
}) {
  if (!error) return null;
  return (
    <p className={`${css.texts.error} ${className}`} role="alert">
      {error}
    </p>
  );
}
