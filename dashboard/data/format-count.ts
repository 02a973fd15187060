// Counts of things, as shared/format-count.ts has them: the dashboard contains no code of shared/.

/** Such as `1 box` and `2 boxes`. @param plural default: the noun with s */
export const formatCount = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`
