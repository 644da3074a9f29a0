/** Why something failed, in words; nothing while there is no error. */
export function ErrorText({ error }: { error: string | undefined }) {
  if (!error) return null;
  return (
    <p className="error" role="alert">
      {error}
    </p>
  );
}
