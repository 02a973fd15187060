// The path of the dynamic loader in executables.
import { readFileSync } from 'node:fs'
import t from 'tap'
import {
  findInterpreter,
  replaceInterpreter,
} from '../../../../coordinator/providers/container/elf-interpreter.ts'

t.test('replaces the path in an executable', async (t) => {
  const executable = readFileSync(process.execPath)
  const { path, size } = findInterpreter(executable)
  t.match(path, /\/ld-linux/)
  t.equal(size, path.length + 1)
  const before = Buffer.from(executable)
  replaceInterpreter(executable, '/opt/boxwood/agent/l1a2b3c')
  t.equal(findInterpreter(executable).path, '/opt/boxwood/agent/l1a2b3c')
  replaceInterpreter(executable, path)
  t.ok(executable.equals(before), 'nothing else has changed')
  t.throws(() => replaceInterpreter(executable, `/${'a'.repeat(size)}`), { message: /longer/ })
})

t.test('refuses other files', async (t) => {
  t.throws(() => findInterpreter(Buffer.from('#!/bin/sh\n')), { message: /no 64-bit/ })
  const withoutLoader = Buffer.from(readFileSync(process.execPath).subarray(0, 4096))
  // No program headers.
  withoutLoader.writeUInt16LE(0, 0x38)
  t.throws(() => findInterpreter(withoutLoader), { message: /no dynamic loader/ })
})
