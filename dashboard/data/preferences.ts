// What a person has chosen for this browser: the theme, whether the sidebar shows only icons, and the size of terminal text.
import { effect, signal } from '@preact/signals'

export const THEMES = { system: 'System', light: 'Light', dark: 'Dark' } as const
export type Theme = keyof typeof THEMES

const THEME = 'boxwood-theme'
const SIDEBAR = 'boxwood-sidebar'
const TERMINAL = 'boxwood-terminal-font-size'

/** Pixels. */
export const FONT_SIZES = { min: 10, default: 14, max: 24 } as const

export const theme = signal<Theme>('system')
export const isSidebarCollapsed = signal(false)
export const terminalFontSize = signal<number>(FONT_SIZES.default)

export function setTerminalFontSize(size: number): void {
  if (size >= FONT_SIZES.min && size <= FONT_SIZES.max) terminalFontSize.value = size
}

/** Reads the choices, applies them, and stores each change. A browser without storage keeps them until the page is closed. */
export function startPreferences(): void {
  const stored = read(THEME)
  if (stored === 'light' || stored === 'dark') theme.value = stored
  isSidebarCollapsed.value = read(SIDEBAR) === 'collapsed'
  setTerminalFontSize(Number(read(TERMINAL) ?? FONT_SIZES.default))
  effect(() => {
    const { dataset } = document.documentElement
    if (theme.value === 'system') delete dataset.theme
    else dataset.theme = theme.value
    write(THEME, theme.value)
  })
  effect(() => write(SIDEBAR, isSidebarCollapsed.value ? 'collapsed' : 'open'))
  effect(() => write(TERMINAL, String(terminalFontSize.value)))
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch {
    // The storage is full or turned off.
  }
}
