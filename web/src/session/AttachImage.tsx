import styles from "./composer.module.css";

/** The button that opens the browser's file picker for images. */
export function AttachImage({ onFiles }: { onFiles: (files: Iterable<File>) => void }) {
  return (
    <label className={`button ghost small ${styles.attachImage}`}>
      Attach image
      <input
        type="file"
        className="visually-hidden"
        accept="image/png,image/jpeg,image/gif,image/webp"
        multiple
        onChange={(event) => onFiles(event.target.files ?? [])}
      />
    </label>
  );
}
