// The widths of characters in a terminal, in columns. As in dashboard/views/xterm.ts: with another table than that of
// the client, the cursor is wrong after the screen has been drawn. Unicode 11 gives each code point a width, as the C library
// does for programs such as bash: a flag has two columns, and each emoji of a ZWJ sequence two.
import { Unicode11Addon } from '@xterm/addon-unicode11/lib/addon-unicode11.mjs'

type XtermTerminal = {
  loadAddon(addon: Unicode11Addon): void
  readonly unicode: { activeVersion: string }
}

/** @param terminal of xterm with `allowProposedApi`, before the first write */
export function useUnicode11(terminal: XtermTerminal): void {
  terminal.loadAddon(new Unicode11Addon())
  terminal.unicode.activeVersion = '11'
}
