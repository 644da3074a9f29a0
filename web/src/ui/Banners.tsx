import { LockOpen, WifiOff, X } from "lucide-react";
import { useState } from "react";
import { useAppState } from "../state/store";
import { text } from "../text";
import styles from "./banners.module.css";
import { Icon } from "./Icon";
import { IconButton } from "./IconButton";

const DISMISSED = "quarterdeck.plain-http";

/** What concerns the whole page: the hub cannot be reached, or the connection is not encrypted. */
export function Banners() {
  return (
    <>
      <Offline />
      {!window.isSecureContext && <NotEncrypted />}
    </>
  );
}

function Offline() {
  const connection = useAppState((state) => state.connection);
  if (connection === "online" || connection === "connecting") return null;
  return (
    <p className={styles.banner} data-tone="wait" role="status">
      <Icon of={WifiOff} />
      {connection === "refused" ? text.app.accessEnded : text.app.hubAway}
    </p>
  );
}

function NotEncrypted() {
  const [dismissed, setDismissed] = useState(() => sessionStorage.getItem(DISMISSED) !== null);
  if (dismissed) return null;
  const dismiss = (): void => {
    sessionStorage.setItem(DISMISSED, "yes");
    setDismissed(true);
  };
  return (
    <section className={styles.banner} data-tone="plain" aria-label={text.app.connection}>
      <Icon of={LockOpen} />
      <span>{text.app.notEncrypted}</span>
      <IconButton icon={X} label={text.app.dismiss} onClick={dismiss} />
    </section>
  );
}
