// Two ways of following what a program writes: the stream of a detached command, and `tail -f` over ssh.
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { type OnText, readEvents, readFifo } from './arrivals.ts'
import type { Boxwood } from './boxwood.ts'
import { end, run } from './processes.ts'
import type { Ssh } from './ssh.ts'

/** A program that writes, and what follows it. */
export type Followed = {
  /** Calls back with each piece of text as it arrives. To be set before `go`. */
  onText(callback: OnText): void
  close(): Promise<void>
}

/**
 * Starts shell text that writes to its standard output, and follows it. Resolves once whatever it writes is seen.
 * `name` is of this writer alone.
 */
export type Follow = (name: string, script: string) => Promise<Followed>

export const followOverBoxwood =
  (boxwood: Boxwood): Follow =>
  async (_name, script) => {
    const route = `/v1/box/${boxwood.box.hostname}/exec`
    const body = Buffer.from(JSON.stringify({ command: script, detached: true }))
    const started = await boxwood.send('POST', route, body, { 'content-type': 'application/json' })
    const { processId } = JSON.parse(Buffer.concat(await started.toArray()).toString('utf8'))
    let callback: OnText = () => undefined
    const stream = await readEvents(
      new URL(`${route}/${processId}/stream?streams=stdout`, boxwood.url),
      { authorization: `Bearer ${boxwood.key}` },
      (name, data, at) => {
        if (name === 'stdout') callback(JSON.parse(data).data, at)
      },
    )
    return {
      onText(listener) {
        callback = listener
      },
      async close() {
        stream.destroy()
        const gone = await boxwood.send('DELETE', `${route}/${processId}`)
        await gone.resume().toArray()
      },
    }
  }

/** The writer runs on this machine, as ssh's other side does. @param start runs shell text in the background */
export const followOverSsh =
  (ssh: Ssh, dir: string, start: (script: string) => ChildProcess): Follow =>
  async (name, script) => {
    const [file, pipe] = [`${dir}/${name}.log`, `${dir}/${name}.pipe`]
    await writeFile(file, '\n')
    await run('mkfifo', [pipe])
    const begun = Promise.withResolvers<void>()
    let callback: OnText = () => begun.resolve()
    const arrivals = readFifo(pipe, (text, at) => callback(text, at))
    const written = openSync(pipe, 'w')
    const tail = ssh.follow(file, written)
    closeSync(written)
    // The empty line: from here on, what is written arrives.
    await begun.promise
    const writer = start(`exec >>${file}; ${script}`)
    return {
      onText(listener) {
        callback = listener
      },
      async close() {
        await Promise.all([end(writer, 'SIGKILL'), end(tail)])
        arrivals.destroy()
      },
    }
  }
