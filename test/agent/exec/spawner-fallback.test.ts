// Where the posix_spawn addon was not compiled or cannot be loaded, commands run with Node's child_process.
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { getNativeFileName, NATIVE_PARTS } from '../../../shared/native-file-names.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const PROJECT_DIR = join(import.meta.dirname, '../../..')
const PROGRAM = `
  import { createSpawner } from './agent/exec/spawner.ts'
  const spawner = createSpawner()
  const ignore = () => {}
  const command = await spawner.start('exit 7', { cwd: '/', env: {}, onStdout: ignore, onStderr: ignore })
  const { exitCode } = await command.exit
  spawner.close()
  let error
  try { createSpawner('native') } catch ({ message }) { error = message }
  console.log(JSON.stringify({ kind: spawner.kind, exitCode, error }))
`

t.test('falls back to child_process without a usable addon', async (t) => {
  const copy = createTempDir(t, 'no-addon')
  for (const name of ['agent', 'shared'])
    cpSync(join(PROJECT_DIR, name), join(copy, name), {
      recursive: true,
      filter: (path) => !/\.node$|\/(run|confine|terminal)-[0-9a-f]+$/.test(path),
    })
  symlinkSync(join(PROJECT_DIR, 'node_modules'), join(copy, 'node_modules'))
  writeFileSync(join(copy, 'package.json'), '{"type":"module"}')
  writeFileSync(join(copy, 'program.ts'), PROGRAM)
  const runProgram = () => {
    const env = { PATH: process.env.PATH }
    return JSON.parse(execFileSync(process.execPath, [join(copy, 'program.ts')], { env, encoding: 'utf8' }))
  }
  const expected = { kind: 'node', exitCode: 7, error: /native spawner was not compiled/ }
  t.match(runProgram(), expected, 'the addon is missing')

  const native = join(copy, 'agent/exec/native')
  const addon = getNativeFileName(NATIVE_PARTS.spawner, (name) => readFileSync(join(native, name)))
  writeFileSync(join(native, addon), 'no shared object')
  t.match(runProgram(), expected, 'the addon cannot be loaded')
  t.same(readdirSync(native).sort(), [
    'README.md',
    'confine.c',
    'run.c',
    'runner.h',
    addon,
    'spawn.c',
    'terminal.c',
  ])
})

// The behaviour of commands is the same with child_process.
process.env.BOXWOOD_SPAWNER = 'node'
await import('./run.test.ts')
await import('./output.test.ts')
await import('./terminate.test.ts')
