// Names of signals as the interface shows them.
import { constants } from 'node:os'

// Reversed, so that of two names for one number (SIGABRT, SIGIOT) the first wins.
const NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name.slice('SIG'.length)]),
)

/** Without SIG, such as TERM; a real-time signal as its number, since shells do not agree on a name. */
export const signalName = (signal: number): string => NAMES.get(signal) ?? String(signal)
