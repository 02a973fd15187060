// Text that a box or a user has chosen: characters that are invisible or change the order of the text are shown by their code.

/**
 * Global: for replace() and search(). Fillers and other characters without a glyph included; not the variation selector with
 * which a symbol is shown as an emoji.
 */
export const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u2800]|(?!\ufe0f)\p{Default_Ignorable_Code_Point}|(?<!\p{Extended_Pictographic})\ufe0f/gu

/** `a\u202eb` → `a⟨U+202E⟩b`. */
export const showHidden = (text: string): string =>
  text.replace(HIDDEN, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    return `⟨U+${code}⟩`
  })

/** Like showHidden, for output in an element that keeps tabs and line feeds. */
export const showHiddenInOutput = (text: string): string =>
  text
    .split(/([\t\n])/)
    .map((part) => (part === '\t' || part === '\n' ? part : showHidden(part)))
    .join('')
