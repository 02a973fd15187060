// Counts of things in messages.

/** Such as `1 box` and `2 boxes`. @param plural default: the noun with s */
export const formatCount = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`
