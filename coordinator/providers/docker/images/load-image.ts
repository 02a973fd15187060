// Loads images into an engine.
import type { Readable } from 'node:stream'
import type { Engine } from '../engine.ts'

/** Loads a tar stream in the format of `docker save`. Returns the first problem that the engine reports; undefined: none. */
export async function loadImage(
  { http }: Engine,
  content: Readable,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const lines = http.lines<{ error?: string }>({
    method: 'POST',
    path: '/images/load',
    query: { quiet: true },
    headers: { 'content-type': 'application/x-tar' },
    content,
    signal,
    timeoutMs: null,
  })
  let problem: string | undefined
  for await (const { error } of lines) problem ??= error
  return problem
}
