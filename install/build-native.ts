// Compiles the optional native parts of the agent. npm runs this after an install.
// Never fails the install: without a C compiler the agent uses slower or simpler fallbacks.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { getRunnerFileName, getSpawnAddonFileName } from '../shared/native-file-names.ts'

const projectDir = join(import.meta.dirname, '..')
const nativeDir = join(projectDir, 'agent/exec/native')
const headersDir = join(projectDir, 'node_modules/node-api-headers/include')
const COMPILERS = ['cc', 'gcc', 'clang']

type NativePart = {
  name: string
  source: string
  getFileName(source: Uint8Array): string
  /** Alternative compiler options. The first set that compiles is used. */
  options: string[][]
  /** Printed in parentheses after a successful build. */
  purpose: string
  /** Printed when the part could not be compiled. */
  fallback: string
}

const PARTS: NativePart[] = [
  {
    name: 'the native spawner',
    source: 'spawn.c',
    getFileName: getSpawnAddonFileName,
    options: [['-shared', '-fPIC', '-pthread', '-I', headersDir]],
    purpose: 'starts commands twice as fast',
    fallback: 'commands start a little slower',
  },
  {
    name: 'the native runner',
    source: 'run.c',
    getFileName: getRunnerFileName,
    // A static binary ignores LD_PRELOAD, which the command's environment may set.
    options: [['-static'], []],
    purpose: 'records the output and exit status of detached commands',
    fallback: 'detached commands use a shell fallback with less exact exit information',
  },
]

/** Returns the line to print. */
function buildPart({ name, source, getFileName, options, purpose, fallback }: NativePart): string {
  const sourcePath = join(nativeDir, source)
  const fileName = getFileName(readFileSync(sourcePath))
  const target = join(nativeDir, fileName)
  if (existsSync(target)) return `${name} is already compiled (${purpose})`
  const tempPath = `${target}.${process.pid}`
  let failure = 'no C compiler found'
  for (const compiler of COMPILERS) {
    for (const partOptions of options) {
      const args = ['-O2', '-Wall', ...partOptions, sourcePath, '-o', tempPath]
      const { status, stderr, error } = spawnSync(compiler, args, { encoding: 'utf8' })
      if (status === 0) {
        renameSync(tempPath, target)
        removeOldBuilds(fileName)
        return `compiled ${name} with ${compiler} (${purpose})`
      }
      // `error` is set when the compiler does not exist.
      if (error === undefined)
        failure = `failed to compile ${name} (${stderr.trim().split('\n').slice(0, 3).join(' ')})`
    }
  }
  return `${failure}; ${fallback}`
}

/** Deletes builds of older versions of the same part. File names are `<part>-<hash>`. */
function removeOldBuilds(fileName: string): void {
  const prefix = fileName.slice(0, fileName.indexOf('-') + 1)
  for (const name of readdirSync(nativeDir))
    if (name.startsWith(prefix) && name !== fileName) rmSync(join(nativeDir, name), { force: true })
}

for (const part of PARTS) {
  try {
    console.log(`boxwood: ${buildPart(part)}`)
  } catch (error) {
    console.log(`boxwood: failed to compile ${part.name} (${String(error)}); ${part.fallback}`)
  }
}
