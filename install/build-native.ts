// Compiles the optional native parts. npm runs this script after an install.
// The script never fails the install: without a C compiler Boxwood uses the fallbacks named below.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { getConfineFileName, getRunnerFileName, getSpawnAddonFileName } from '../shared/native-file-names.ts'

const projectDir = join(import.meta.dirname, '..')
const nativeDir = join(projectDir, 'agent/exec/native')
const headersDir = join(projectDir, 'node_modules/node-api-headers/include')
const COMPILERS = ['cc', 'gcc', 'clang']
const RETRY_HINT =
  'To compile the native part, fix the error and run `npm run build-native` in the directory of Boxwood.'

type NativePart = {
  name: string
  source: string
  getFileName(source: Uint8Array): string
  /** Alternative compiler options. The first set that compiles is used. */
  optionSets: string[][]
  /** Printed in parentheses after a successful build. */
  purpose: string
  /** What happens without the part: a sentence, printed when the part could not be compiled. */
  fallback: string
}

const PARTS: NativePart[] = [
  {
    name: 'the native spawner',
    source: 'spawn.c',
    getFileName: getSpawnAddonFileName,
    optionSets: [['-shared', '-fPIC', '-pthread', '-I', headersDir]],
    purpose: 'starts commands twice as fast',
    fallback:
      'Starting a command takes about twice as long, and synchronous commands cannot open /dev/stdout and /dev/stderr.',
  },
  {
    name: 'the native runner',
    source: 'run.c',
    getFileName: getRunnerFileName,
    // A static binary ignores LD_PRELOAD, which the command's environment may set.
    optionSets: [['-static'], []],
    purpose: 'records the output and exit status of detached commands',
    fallback: 'A shell script runs detached commands; agent/exec/detached/runner-script.ts lists its limits.',
  },
  {
    name: 'the native confinement',
    source: 'confine.c',
    getFileName: getConfineFileName,
    // A static binary runs in a box whatever libraries its file-system view has.
    optionSets: [['-static'], []],
    purpose: 'keeps boxes out of kernel keyrings',
    fallback: 'Boxes can use the kernel keyrings of the coordinator, except at isolation level bubblewrap.',
  },
]

/** Returns the line to print. */
function buildPart({ name, source, getFileName, optionSets, purpose, fallback }: NativePart): string {
  const sourcePath = join(nativeDir, source)
  const fileName = getFileName(readFileSync(sourcePath))
  const target = join(nativeDir, fileName)
  if (existsSync(target)) return `${name} is already compiled (${purpose})`
  const tempPath = `${target}.${process.pid}`
  let failure = `no C compiler is installed (${COMPILERS.join(', ')})`
  for (const compiler of COMPILERS) {
    for (const options of optionSets) {
      const args = ['-O2', '-Wall', ...options, sourcePath, '-o', tempPath]
      const { status, stderr, error } = spawnSync(compiler, args, { encoding: 'utf8' })
      if (status === 0) {
        renameSync(tempPath, target)
        removeOldBuilds(fileName)
        return `compiled ${name} with ${compiler} (${purpose})`
      }
      // `error` is set when the compiler does not exist.
      if (error === undefined)
        failure = `${compiler} failed: ${stderr.trim().split('\n').slice(0, 3).join(' ')}`
    }
  }
  return `${name} was not compiled: ${failure}. ${fallback} ${RETRY_HINT}`
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
    console.log(`boxwood: ${part.name} was not compiled: ${String(error)}. ${part.fallback} ${RETRY_HINT}`)
  }
}
