// The precision of memory in process snapshots.

/** Rounds to 8 binary digits, an error of at most 0.4 percent: small changes would be most of the stored bytes. */
export function roundMemory(kib: number): number {
  const step = Math.max(1, 2 ** (Math.floor(Math.log2(Math.max(1, kib))) - 7))
  return Math.round(kib / step) * step
}
