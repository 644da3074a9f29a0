import { Mic, MicOff } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { IconButton } from "../ui/IconButton";
import { type Recognition, speechRecognition, startDictation } from "./speech";

/** The button that writes what a person says, where the browser can recognize speech. */
export function Dictate({ onText }: { onText: (text: string) => void }) {
  const [running, setRunning] = useState<Recognition>();
  const [error, setError] = useState("");
  const current = useRef<Recognition>(undefined);
  useEffect(() => () => current.current?.abort(), []);
  const Engine = speechRecognition();
  if (!Engine) return null;
  const toggle = (): void => {
    if (running) {
      running.stop();
      return;
    }
    setError("");
    current.current = startDictation(Engine, {
      language: navigator.language,
      onText,
      onError: (code) => setError(text.composer.voiceErrors[code] ?? text.composer.voiceFailed),
      onEnd: () => setRunning(undefined),
    });
    setRunning(current.current);
  };
  return (
    <>
      <IconButton
        icon={running ? MicOff : Mic}
        label={running ? text.composer.dictating : text.composer.dictate}
        className={`${css.button.ghost} ${css.button.small}`}
        aria-pressed={running !== undefined}
        onClick={toggle}
      />
      <ErrorText error={error} />
    </>
  );
}
