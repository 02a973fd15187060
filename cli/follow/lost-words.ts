// What is said of output that a box no longer keeps, to a reader who may lose some of it a hundred times a second.
const EVERY_MS = 1000

export type LostWords = {
  /** Said at once; of what follows within a second the sum is said after it. */
  lost(stream: string, bytes: number): void
  /** Says what has not been said. */
  end(): void
}

/** @param box its name; `now` gives milliseconds from any moment on */
export function lostWords(
  box: string,
  say: (sentence: string) => void,
  now: () => number = () => performance.now(),
): LostWords {
  const unsaid = new Map<string, { bytes: number; places: number }>()
  let sayAt = Number.NEGATIVE_INFINITY

  function end(): void {
    for (const [stream, { bytes, places }] of unsaid) {
      const where = places === 1 ? 'before this' : `in ${places} places before this`
      say(`box: ${bytes} bytes of ${stream} ${where} are missing: ${box} no longer keeps them.`)
    }
    if (unsaid.size > 0) sayAt = now() + EVERY_MS
    unsaid.clear()
  }

  return {
    lost(stream, bytes) {
      const { bytes: before, places } = unsaid.get(stream) ?? { bytes: 0, places: 0 }
      unsaid.set(stream, { bytes: before + bytes, places: places + 1 })
      if (now() >= sayAt) end()
    },
    end,
  }
}
