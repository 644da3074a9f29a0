import { type ComponentType, type ReactNode, useEffect, useState } from "react";

/**
 * A component whose code is loaded when it is first shown; `waiting` is shown until then. It appears
 * as soon as it is there. What React's own `lazy` suspends appears 300 ms after its fallback at the
 * earliest, however quickly it was loaded.
 */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  waiting: ReactNode = null,
): ComponentType<Props> {
  let Ready: ComponentType<Props> | undefined;
  let loading: Promise<void> | undefined;
  const begin = (): Promise<void> => {
    loading ??= load().then(
      (component) => {
        Ready = component;
      },
      (error: unknown) => {
        loading = undefined; // the next attempt loads it again
        throw error;
      },
    );
    return loading;
  };
  return function Later(props: Props) {
    const [ended, setEnded] = useState<{ error?: unknown }>({});
    useEffect(() => {
      if (Ready) return;
      let here = true;
      begin().then(
        () => here && setEnded({}),
        (error: unknown) => here && setEnded({ error }),
      );
      return () => {
        here = false;
      };
    }, []);
    if (Ready) return <Ready {...props} />;
    if (ended.error) throw ended.error; // for the error boundary around it
    return waiting;
  };
}
