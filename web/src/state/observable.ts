// A value that components subscribe to, and the view that one part of the store has of it.
import { useSyncExternalStore } from "react";

/** What a part of the store may read and write: its own members, and no others. */
export interface Slice<T> {
  get(): T;
  set(change: Partial<T>): void;
}

export class Observable<T> implements Slice<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  readonly get = (): T => this.value;

  set(change: Partial<T>): void {
    this.value = { ...this.value, ...change };
    for (const listener of this.listeners) listener();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

/** A part of the value; the component is rendered again when that part changes. */
export function useObservable<T, P>(observable: Observable<T>, select: (value: T) => P): P {
  return useSyncExternalStore(observable.subscribe, () => select(observable.get()));
}

// --- maps that are never changed in place -------------------------------------------------------

export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value);
}

export function withoutEntry<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  if (!map.has(key)) return map;
  const next = new Map(map);
  next.delete(key);
  return next;
}
