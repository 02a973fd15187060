// Compiles what is written in C, where there is a compiler; without it everything works, a little slower.
// Run by npm after an install. Never fails one.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { nativeRunFile, nativeSpawnFile } from '../shared/native-spawn-file.ts'

const project = join(import.meta.dirname, '..')
const folder = join(project, 'agent/exec/native')
const headers = join(project, 'node_modules/node-api-headers/include')
const COMPILERS = ['cc', 'gcc', 'clang']

type Part = {
  what: string
  source: string
  fileOf(source: Uint8Array): string
  /** The first that works is taken. */
  options: string[][]
  without: string
}

const PARTS: Part[] = [
  {
    what: 'the native spawner',
    source: 'spawn.c',
    fileOf: nativeSpawnFile,
    options: [['-shared', '-fPIC', '-pthread', '-I', headers]],
    without: 'commands start a little slower',
  },
  {
    what: 'the runner of detached processes',
    source: 'run.c',
    fileOf: nativeRunFile,
    // Static, nothing that a command's environment says (LD_PRELOAD) is done to the runner too.
    options: [['-static'], []],
    without: 'detached processes are run by a shell script, which knows less of how they end',
  },
]

function compile({ what, source, fileOf, options, without }: Part): string {
  const path = join(folder, source)
  const name = fileOf(readFileSync(path))
  const target = join(folder, name)
  if (existsSync(target)) return `boxwood: ${what} is built already`
  const staging = `${target}.${process.pid}`
  let said = 'no C compiler here'
  for (const compiler of COMPILERS) {
    for (const some of options) {
      const all = ['-O2', '-Wall', ...some, path, '-o', staging]
      const { status, stderr, error } = spawnSync(compiler, all, { encoding: 'utf8' })
      if (status === 0) {
        renameSync(staging, target)
        removeOlder(name)
        return `boxwood: built ${what} with ${compiler}`
      }
      if (error === undefined) said = stderr.trim().split('\n').slice(0, 3).join(' ')
    }
  }
  return `boxwood: without ${what}, ${without} (${said})`
}

function removeOlder(name: string): void {
  const kind = name.slice(0, name.indexOf('-') + 1)
  for (const old of readdirSync(folder))
    if (old.startsWith(kind) && old !== name) rmSync(join(folder, old), { force: true })
}

for (const part of PARTS) {
  try {
    console.log(compile(part))
  } catch (error) {
    console.log(`boxwood: without ${part.what}, ${part.without} (${String(error)})`)
  }
}
