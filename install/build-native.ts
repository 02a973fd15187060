// Compiles what is written in C, where there is a compiler; without it everything works, a little slower.
// Run by npm after an install. Never fails one.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { nativeSpawnFile } from '../shared/native-spawn-file.ts'

const project = join(import.meta.dirname, '..')
const folder = join(project, 'agent/exec/native')
const source = join(folder, 'spawn.c')
const headers = join(project, 'node_modules/node-api-headers/include')
const COMPILERS = ['cc', 'gcc', 'clang']

function compile(): string {
  const name = nativeSpawnFile(readFileSync(source))
  const target = join(folder, name)
  if (existsSync(target)) return 'boxwood: the native spawner is built already'
  const staging = `${target}.${process.pid}`
  const options = ['-O2', '-Wall', '-shared', '-fPIC', '-pthread', '-I', headers, source, '-o', staging]
  let said = 'no C compiler here'
  for (const compiler of COMPILERS) {
    const { status, stderr, error } = spawnSync(compiler, options, { encoding: 'utf8' })
    if (status === 0) {
      renameSync(staging, target)
      for (const old of readdirSync(folder))
        if (old.endsWith('.node') && old !== name) rmSync(join(folder, old))
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
