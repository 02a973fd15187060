// Finds the programs of a desktop on the PATH.
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import type { AgentDesktopStatus, DesktopMode } from '../../shared/api/desktop.ts'
import { DESKTOP_REQUIREMENTS } from '../../shared/desktop-programs.ts'
import { ApiError } from '../../shared/errors.ts'
import { DESKTOP_PROGRAMS } from '../../shared/field-values.ts'

type Programs = AgentDesktopStatus['programs']

export type DesktopPrograms = {
  /** In the order of DESKTOP_PROGRAMS. */
  programs: Programs
  /** The path of an installed program. */
  paths: Partial<Record<Programs[number]['role'], string>>
}

/** @param path the value of PATH */
export async function findDesktopPrograms(path: string): Promise<DesktopPrograms> {
  const directories = path.split(delimiter).filter(isAbsolute)
  const programs: Programs = []
  const paths: DesktopPrograms['paths'] = {}
  for (const role of DESKTOP_PROGRAMS) {
    const found = await findFirst(DESKTOP_REQUIREMENTS[role].programs, directories)
    if (found !== null) paths[role] = found.path
    programs.push({ role, program: found?.name ?? null })
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

/** @throws ApiError desktop_not_installed */
export function assertInstalled(programs: Programs, mode: DesktopMode): void {
  const isMissing = programs.some(
    ({ role, program }) => program === null && DESKTOP_REQUIREMENTS[role].requiredFor.includes(mode),
  )
  if (isMissing) throw new ApiError('desktop_not_installed')
}
