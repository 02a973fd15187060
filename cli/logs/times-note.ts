// Notes for --since and --timestamps of output whose times are unknown. Each is printed once.
import { printMessage } from '../output/print.ts'

export type TimesNote = { printNoSince(): void; printNoTimes(): void }

export function createTimesNote(): TimesNote {
  const printed = new Set<string>()
  const printOnce = (text: string) => {
    if (!printed.has(text)) printMessage(text)
    printed.add(text)
  }
  return {
    printNoSince: () => printOnce('the times of this output are unknown: --since has no effect.'),
    printNoTimes: () => printOnce('the times of this output are unknown: --timestamps prints "-".'),
  }
}
