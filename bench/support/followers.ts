// Two ways of following what a program writes: the stream of a detached command, and `tail -f` over ssh.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import type { Boxwood } from './boxwood.ts'
import { end } from './processes.ts'
import type { Ssh } from './ssh.ts'

/** A program that writes, and what follows it. */
export type Followed = {
  /** Calls back with each piece of text as it arrives. To be set before `go`. */
  onText(callback: (text: string) => void): void
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
    const stream = await boxwood.send('GET', `${route}/${processId}/stream?streams=stdout`)
    let callback: (text: string) => void = () => undefined
    readEvents(stream, (name, data) => {
      if (name === 'stdout') callback(JSON.parse(data).data)
    })
    await once(stream, 'readable')
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

function readEvents(stream: IncomingMessage, onEvent: (name: string, data: string) => void): void {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('error', () => undefined)
  stream.on('data', (chunk: string) => {
    const events = (rest + chunk).split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) {
      const [first = '', , last = ''] = event.split('\n')
      onEvent(first.slice('event: '.length), last.slice('data: '.length))
    }
  })
}

/** The writer runs on this machine, as ssh's other side does. @param start runs shell text in the background */
export const followOverSsh =
  (ssh: Ssh, dir: string, start: (script: string) => ChildProcess): Follow =>
  async (name, script) => {
    const file = `${dir}/${name}.log`
    await writeFile(file, '\n')
    const tail = ssh.follow(file)
    let callback: (text: string) => void = () => undefined
    tail.stdout.setEncoding('utf8')
    tail.stdout.on('data', (text: string) => callback(text))
    // The empty line: from here on, what is written arrives.
    await once(tail.stdout, 'data')
    const writer = start(`exec >>${file}; ${script}`)
    return {
      onText(listener) {
        callback = listener
      },
      async close() {
        await Promise.all([end(writer, 'SIGKILL'), end(tail)])
      },
    }
  }
