// Prints results on stdout, and messages on stderr.
import { replaceCommandName } from '../command-name.ts'

/**
 * Replaces newlines, control and format characters: text from a box or a server must not control the terminal. Lone surrogates, which
 * stand for bytes that are not UTF-8, are not valid text.
 */
export function sanitize(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (character) =>
    character === '\n' ? ' ' : '\uFFFD',
  )
}

export const print = (line: string): void => void process.stdout.write(`${line}\n`)
export const printJson = (value: unknown): void => print(formatJson(value, 2))

/** JSON whose strings have no control and format characters: JSON itself permits most of them without an escape. */
export const formatJson = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replace(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  )
export const printStderr = (line: string): void => void process.stderr.write(`${line}\n`)
/** An error, a warning or a note on stderr, with the prefix `box: `. Quoted commands such as `box ls` get the typed name. */
export const printMessage = (text: string): void => printStderr(`box: ${replaceCommandName(text)}`)
