// Formats an argument for the shell, in the commands that a page shows.
import { HIDDEN } from './visible-text.ts'

/** `a b` → `'a b'`; `a\u202eb` → `$'a\u202eb'`, which shells expand, so that hidden characters are visible. */
export function quoteShell(text: string): string {
  // Not ~, which the shell of the user expands.
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  if (text.search(HIDDEN) === -1) return `'${text.replaceAll("'", "'\\''")}'`
  const escaped = text.replace(/[\\']/g, '\\$&').replace(HIDDEN, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16)
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`
  })
  return `$'${escaped}'`
}
