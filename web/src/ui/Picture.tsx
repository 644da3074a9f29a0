// A picture of the story. One that the hub keeps has a path instead of its data: it is read once, with
// this page's key, and what is behind the path never changes.
import { useEffect, useState } from "react";
import { keyHeaders } from "../api/pageKey";
import { text } from "../text";
import { css } from "./css";

/** Pictures that stay in memory. */
const MOST = 60;
const kept = new Map<string, Promise<string>>();

async function load(path: string): Promise<string> {
  const response = await fetch(path, { headers: keyHeaders() });
  if (!response.ok) throw new Error(String(response.status));
  return URL.createObjectURL(await response.blob());
}

/** The address of a picture for this page. */
export function pictureAddress(path: string): Promise<string> {
  const known = kept.get(path);
  if (known) return known;
  const loading = load(path);
  kept.set(path, loading);
  loading.catch(() => kept.delete(path));
  const [oldest] = kept;
  if (kept.size > MOST && oldest) {
    kept.delete(oldest[0]);
    void oldest[1].then((address) => URL.revokeObjectURL(address)).catch(() => undefined);
  }
  return loading;
}

export function Picture(props: { src: string; alt: string; className?: string | undefined }) {
  const { src, alt, className } = props;
  const isHere = src.startsWith("data:");
  const [found, setFound] = useState<{ src: string; address?: string }>();
  useEffect(() => {
    if (isHere) return;
    let current = true;
    pictureAddress(src)
      .then((address) => current && setFound({ src, address }))
      .catch(() => current && setFound({ src }));
    return () => {
      current = false;
    };
  }, [src, isHere]);
  const own = found?.src === src ? found : undefined;
  if (own && !own.address) return <p className={css.texts.muted}>{text.story.pictureMissing}</p>;
  return <img className={className} src={isHere ? src : own?.address} alt={alt} />;
}
