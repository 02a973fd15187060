// Compiles what is written in C, where there is a compiler; without it everything works, a little slower.
// Run by npm after an install. Never fails one.
import { spawnSync } from 'node:child_process'
import { renameSync, statSync } from 'node:fs'
import { join } from 'node:path'

const project = join(import.meta.dirname, '..')
const source = join(project, 'agent/exec/native/spawn.c')
const target = join(project, 'agent/exec/native/spawn.node')
const headers = join(project, 'node_modules/node-api-headers/include')
const COMPILERS = ['cc', 'gcc', 'clang']

const changedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

function compile(): string {
  if (changedAt(target) > changedAt(source)) return 'boxwood: the native spawner is built already'
  const staging = `${target}.${process.pid}`
  const options = ['-O2', '-Wall', '-shared', '-fPIC', '-pthread', '-I', headers, source, '-o', staging]
  let said = 'no C compiler here'
  for (const compiler of COMPILERS) {
    const { status, stderr, error } = spawnSync(compiler, options, { encoding: 'utf8' })
    if (status === 0) {
      renameSync(staging, target)
      return `boxwood: built the native spawner with ${compiler}`
    }
    if (error === undefined) said = stderr.trim().split('\n').slice(0, 3).join(' ')
  }
  return `boxwood: without the native spawner, commands start a little slower (${said})`
}

try {
  console.log(compile())
} catch (error) {
  console.log(`boxwood: without the native spawner, commands start a little slower (${String(error)})`)
}
