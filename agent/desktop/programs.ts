// Finds the programs of a desktop on the PATH, and names the Debian packages of those that are missing.
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import type { DesktopMode, DesktopProgram } from '../../shared/api/desktop.ts'
import { ApiError } from '../../shared/errors.ts'

type Role = DesktopProgram['role']
type Requirement = Pick<DesktopProgram, 'role' | 'package' | 'requiredFor'> & {
  /** The first one that is installed is used. */
  programs: readonly string[]
  /** The mode whose installation includes an optional program. */
  recommendedFor?: DesktopMode
}

const REQUIREMENTS: readonly Requirement[] = [
  { role: 'display', programs: ['Xvfb'], package: 'xvfb', requiredFor: ['desktop', 'browser'] },
  { role: 'viewer', programs: ['x11vnc'], package: 'x11vnc', requiredFor: ['desktop', 'browser'] },
  {
    role: 'windowManager',
    programs: ['startxfce4', 'openbox', 'xfwm4', 'fluxbox', 'icewm'],
    package: 'openbox',
    requiredFor: ['desktop'],
  },
  {
    role: 'terminal',
    programs: ['xfce4-terminal', 'xterm', 'x-terminal-emulator'],
    package: 'xterm',
    requiredFor: [],
    recommendedFor: 'desktop',
  },
  {
    role: 'browser',
    programs: ['chromium', 'chromium-browser', 'google-chrome'],
    package: 'chromium',
    requiredFor: ['browser'],
  },
]

/** Programs that draw text need a font, which no program requires as a package. */
const FONTS_PACKAGE = 'fonts-dejavu-core'
const NEED_FONTS: readonly Role[] = ['terminal', 'browser']

export type DesktopPrograms = {
  /** In the order of DESKTOP_PROGRAMS. */
  programs: DesktopProgram[]
  /** The path of an installed program. */
  paths: Partial<Record<Role, string>>
}

/** @param path the value of PATH */
export async function findDesktopPrograms(path: string): Promise<DesktopPrograms> {
  const directories = path.split(delimiter).filter(isAbsolute)
  const programs: DesktopProgram[] = []
  const paths: DesktopPrograms['paths'] = {}
  for (const { role, programs: names, package: packageName, requiredFor } of REQUIREMENTS) {
    const found = await findFirst(names, directories)
    if (found !== null) paths[role] = found.path
    programs.push({ role, program: found?.name ?? null, package: packageName, requiredFor })
  }
  return { programs, paths }
}

async function findFirst(names: readonly string[], directories: readonly string[]) {
  for (const name of names) {
    for (const directory of directories) {
      const path = join(directory, name)
      if (await isExecutable(path)) return { name, path }
    }
  }
  return null
}

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )

/** The command for root that installs what a mode lacks; null: nothing is missing. */
export function formatInstallCommand(programs: readonly DesktopProgram[], mode: DesktopMode): string | null {
  const missing = programs.filter(({ role, program, requiredFor }) => {
    const recommendedFor = REQUIREMENTS.find((requirement) => requirement.role === role)?.recommendedFor
    return program === null && (requiredFor.includes(mode) || recommendedFor === mode)
  })
  if (missing.length === 0) return null
  const fonts = missing.some(({ role }) => NEED_FONTS.includes(role)) ? [FONTS_PACKAGE] : []
  const packages = [...missing.map((program) => program.package), ...fonts]
  return `apt-get install -y --no-install-recommends ${packages.join(' ')}`
}

/** @throws ApiError desktop_not_installed, which names what the mode lacks */
export function assertInstalled(programs: readonly DesktopProgram[], mode: DesktopMode): void {
  const missing = programs.filter(
    ({ program, requiredFor }) => program === null && requiredFor.includes(mode),
  )
  if (missing.length === 0) return
  const packages = missing.map((program) => program.package).join(', ')
  throw new ApiError(
    'desktop_not_installed',
    `The box lacks programs of the ${mode === 'browser' ? 'browser' : 'desktop'}, which these Debian packages have: ${packages}. ` +
      `Install them as root: ${formatInstallCommand(programs, mode)}`,
  )
}
