// The programs of a desktop, and the Debian packages that have them. The coordinator, not the box, composes the command that a
// user runs as root.
import type { DESKTOP_MODES, DESKTOP_PROGRAMS } from './field-values.ts'

type Role = (typeof DESKTOP_PROGRAMS)[number]
type Mode = (typeof DESKTOP_MODES)[number]

type Requirement = {
  /** The first one that is installed is used. */
  programs: readonly string[]
  package: string
  /** The modes that do not start without it. */
  requiredFor: readonly Mode[]
  /** The mode whose installation includes an optional program. */
  recommendedFor?: Mode
  /** Draws text, and no program requires a font as a package. */
  needsFonts?: boolean
}

export const DESKTOP_REQUIREMENTS: Readonly<Record<Role, Requirement>> = {
  display: { programs: ['Xvfb'], package: 'xvfb', requiredFor: ['desktop', 'browser'] },
  viewer: { programs: ['x11vnc'], package: 'x11vnc', requiredFor: ['desktop', 'browser'] },
  windowManager: {
    programs: ['startxfce4', 'openbox', 'xfwm4', 'fluxbox', 'icewm'],
    package: 'openbox',
    requiredFor: ['desktop'],
  },
  terminal: {
    programs: ['xfce4-terminal', 'xterm', 'x-terminal-emulator'],
    package: 'xterm',
    requiredFor: [],
    recommendedFor: 'desktop',
    needsFonts: true,
  },
  browser: {
    programs: ['chromium', 'chromium-browser', 'google-chrome'],
    package: 'chromium',
    requiredFor: ['browser'],
    needsFonts: true,
  },
}

const FONTS_PACKAGE = 'fonts-dejavu-core'

/** The command for root that installs what a mode lacks on Debian and Ubuntu; null: nothing is missing. */
export function formatInstallCommand(
  installed: readonly { role: Role; program: string | null }[],
  mode: Mode,
): string | null {
  const missing = installed
    .filter(({ program }) => program === null)
    .map(({ role }) => DESKTOP_REQUIREMENTS[role])
    .filter(({ requiredFor, recommendedFor }) => requiredFor.includes(mode) || recommendedFor === mode)
  if (missing.length === 0) return null
  const fonts = missing.some(({ needsFonts }) => needsFonts) ? [FONTS_PACKAGE] : []
  const packages = [...missing.map((requirement) => requirement.package), ...fonts]
  return `apt-get install -y --no-install-recommends ${packages.join(' ')}`
}
