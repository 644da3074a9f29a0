// Speech recognition of the browser, as far as the composer uses it. Browsers have it under two names,
// and TypeScript under none. Only text that is final is written; the audio goes where the browser
// sends it, and never to the hub.

export interface Recognition {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: RecognitionResult) => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start: () => void;
  stop: () => void;
  abort: () => void;
}

export interface RecognitionResult {
  resultIndex: number;
  results: ArrayLike<ArrayLike<{ transcript: string }> & { isFinal: boolean }>;
}

export type RecognitionEngine = new () => Recognition;

/** The browser's engine; undefined where it has none. */
export function speechRecognition(): RecognitionEngine | undefined {
  const page = window as {
    SpeechRecognition?: RecognitionEngine;
    webkitSpeechRecognition?: RecognitionEngine;
  };
  return page.SpeechRecognition ?? page.webkitSpeechRecognition;
}

/** Listen until it is stopped. Each piece of text is given once. */
export function startDictation(
  Engine: RecognitionEngine,
  given: {
    language: string;
    onText: (text: string) => void;
    onError: (code: string) => void;
    onEnd: () => void;
  },
): Recognition {
  const engine = new Engine();
  engine.lang = given.language;
  engine.continuous = true;
  engine.interimResults = false;
  engine.onresult = (event) => {
    for (let at = event.resultIndex; at < event.results.length; at += 1) {
      const result = event.results[at];
      const said = result?.isFinal ? (result[0]?.transcript.trim() ?? "") : "";
      if (said) given.onText(said);
    }
  };
  engine.onerror = ({ error }) => {
    if (error !== "aborted") given.onError(error);
  };
  engine.onend = given.onEnd;
  engine.start();
  return engine;
}
