// The command line of a process, for people.
import { readProcessArguments } from '../../process-table.ts'
import type { BoxProcess } from '../box-processes.ts'
import { displayText } from '../display-text.ts'

/** A character of UTF-8 has up to 4 bytes. */
const MAX_CHAR_BYTES = 4

/** The first `maxChars` characters of the arguments; the name in brackets where there are none, as in ps. */
export function readCommandLine({ pid, name }: BoxProcess, maxChars: number, procRoot = '/proc'): string {
  const bytes = readProcessArguments(pid, maxChars * MAX_CHAR_BYTES, procRoot)
  const text = (bytes?.toString('utf8') ?? '').replace(/\0+$/, '').replaceAll('\0', ' ')
  return displayText(text === '' ? `[${name}]` : text, maxChars)
}
