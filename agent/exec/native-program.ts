// Locates the compiled native parts.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { getNativeFileName, type NativePart } from '../../shared/native-file-names.ts'

const resolvePath = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** The path of the compiled file, which may not exist. */
export function locateNativeFile(part: NativePart): string {
  // A box has only the bundle, without sources.
  if (!existsSync(resolvePath(`./native/${part.source}`))) return resolvePath(`./${part.bundledFileName}`)
  return resolvePath(
    `./native/${getNativeFileName(part, (name) => readFileSync(resolvePath(`./native/${name}`)))}`,
  )
}

/** undefined where the program was not compiled, or does not run. */
export function findNativeProgram(part: NativePart): string | undefined {
  const file = locateNativeFile(part)
  // Probe: the binary may be for another system, or on a file system mounted noexec.
  return spawnSync(file, [], { env: {} }).status === 0 ? file : undefined
}
