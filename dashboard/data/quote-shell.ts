// Formats an argument for the shell, in the commands that a page shows.
import { HIDDEN } from './visible-text.ts'

const toOctal = (byte: number): string => `\\${byte.toString(8).padStart(3, '0')}`

/**
 * `a b` → `'a b'`; `a\u202eb` → `"$(printf 'a\342\200\256b')"`, so that hidden characters are visible. Every POSIX shell
 * expands it to the same text, also in a locale without UTF-8.
 */
export function quoteShell(text: string): string {
  // Not ~, which the shell of the user expands, as zsh does with = at the start.
  if (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(text)) return text
  if (text.search(HIDDEN) === -1) return `'${text.replaceAll("'", "'\\''")}'`
  // The substitution drops line feeds at its end.
  let end = text.length
  while (text[end - 1] === '\n') end -= 1
  // Interactive shells expand ! in double quotes. A format that starts with - is an option.
  const format = text
    .slice(0, end)
    .replace(/[\\%]/g, '$&$&')
    .replace(/['!]|^-/g, (character) => toOctal(character.charCodeAt(0)))
    .replace(HIDDEN, (character) => [...new TextEncoder().encode(character)].map(toOctal).join(''))
  return `"$(printf '${format}')"${end < text.length ? `'${text.slice(end)}'` : ''}`
}
