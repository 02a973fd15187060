// Text that enters or leaves a terminal: pastes and links; and the end of a session.
import type { ExitMessage } from '../../client/attach/messages.ts'
import type { TerminalState } from '../api/terminal-connection.ts'

/** Escape characters could end a bracketed paste, and the rest would be typed. They become visible. */
export const preparePaste = (text: string): string => text.replaceAll('\u001b', '␛')

/** A line feed at the end of the text does not make it two lines, but runs it: it counts. */
export const hasSeveralLines = (text: string): boolean => /[\r\n]/.test(text)

export const countLines = (text: string): number => text.replace(/\r?\n$/, '').split(/\r\n|\r|\n/).length

/** Null: the address is not one of a web page, and is not opened. */
export function parseWebLink(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, href } = new URL(text)
  return protocol === 'http:' || protocol === 'https:' ? href : null
}

export function formatExit({ status, exitCode, signal }: ExitMessage): string {
  if (status === 'lost') return 'The session has ended with an unknown exit status.'
  return signal === null
    ? `The session has ended with exit status ${exitCode ?? 'unknown'}.`
    : `The session was killed by ${signal}.`
}

/** Whether the page attaches to the session no more by itself. */
export const isEnded = ({ type }: TerminalState): boolean => type === 'exited' || type === 'failed'

/** What a keyboard sends for a letter, or for one of `@[\\]^_`, that is pressed with Ctrl. Another text stays. */
export const addCtrl = (text: string): string =>
  /^[@-_a-z]$/.test(text) ? String.fromCharCode(text.charCodeAt(0) & 31) : text
