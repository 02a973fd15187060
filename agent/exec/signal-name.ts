// Converts signal numbers to the names in API responses.
import { constants } from 'node:os'

// Reversed, so that of two names for one number (SIGABRT, SIGIOT) the first wins.
const NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name.slice('SIG'.length)]),
)

/** Returns the name without SIG, such as TERM. A real-time signal has its number, because shells do not agree on names. */
export const signalName = (signal: number): string => NAMES.get(signal) ?? String(signal)
