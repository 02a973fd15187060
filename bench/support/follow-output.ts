// Follows the output of a script in two ways: the stream of a detached process, and `tail -f` over ssh.
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { Boxwood } from './boxwood.ts'
import { runProgram, terminate } from './processes.ts'
import type { SshConnection } from './ssh.ts'
import { type OnText, readEvents, readFifo } from './timestamped-readers.ts'

/** A running script and the reader of its output. */
export type FollowedScript = {
  /** Sets the callback for the output. Set it before the script writes: earlier output is discarded. */
  onText(callback: OnText): void
  /** Kills the script and stops following. */
  close(): Promise<void>
}

/**
 * Starts a shell script and follows its standard output. Resolves when the reader is connected. `name` must be unique for
 * each script.
 */
export type FollowScript = (name: string, script: string) => Promise<FollowedScript>

/** Runs the scripts on the box, as detached processes. */
export const createBoxwoodFollower =
  (boxwood: Boxwood): FollowScript =>
  async (_name, script) => {
    const route = `/v1/box/${boxwood.box.hostname}/exec`
    const { processId } = await boxwood.sendJson('POST', route, { command: script, detached: true })
    let callback: OnText = () => undefined
    const stream = await readEvents(
      new URL(`${route}/${processId}/stream?streams=stdout`, boxwood.url),
      { authorization: `Bearer ${boxwood.key}` },
      (name, data, receivedAt) => {
        if (name === 'stdout') callback(JSON.parse(data).data, receivedAt)
      },
    )
    return {
      onText(listener) {
        callback = listener
      },
      async close() {
        stream.destroy()
        const deleted = await boxwood.send('DELETE', `${route}/${processId}`)
        await deleted.resume().toArray()
      },
    }
  }

/**
 * Runs the scripts with `spawnShell` on this machine, which is also the remote side of the ssh connection. Each script
 * appends to a file in `dir`.
 */
export const createSshFollower =
  (ssh: SshConnection, dir: string, spawnShell: (script: string) => ChildProcess): FollowScript =>
  async (name, script) => {
    const [file, fifo] = [`${dir}/${name}.log`, `${dir}/${name}.pipe`]
    await writeFile(file, '\n')
    await runProgram('mkfifo', [fifo])
    const connected = Promise.withResolvers<void>()
    let callback: OnText = () => connected.resolve()
    const reader = readFifo(fifo, (text, receivedAt) => callback(text, receivedAt))
    const output = openSync(fifo, 'w')
    const tail = ssh.followFile(file, output)
    closeSync(output)
    // The first text is the empty line that the file starts with: `tail` is now following the file.
    await connected.promise
    const writer = spawnShell(`exec >>${file}; ${script}`)
    return {
      onText(listener) {
        callback = listener
      },
      async close() {
        await Promise.all([terminate(writer, 'SIGKILL'), terminate(tail)])
        reader.destroy()
      },
    }
  }
