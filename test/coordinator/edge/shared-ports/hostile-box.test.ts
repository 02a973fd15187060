// What a program on a box may send to harm the coordinator or the viewers of its port.
import type { InformationEvent, ServerResponse } from 'node:http'
import t from 'tap'
import { forwardInformation } from '../../../../coordinator/http/forward/forward-information.ts'
import { startBytes } from './byte-program.ts'

t.test('a response that must not be forwarded is an error of the program', async (t) => {
  const responses = {
    'a status message with a control character': 'HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok',
    'a status below 100': 'HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok',
    'an upgrade without its header': 'HTTP/1.1 101 Switching Protocols\r\n\r\nok',
    'a header with a line break': 'HTTP/1.1 200 OK\r\nX-A: a\rSet-Cookie: b=1\r\nContent-Length: 2\r\n\r\nok',
    'a folded header': 'HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\nContent-Length: 2\r\n\r\nok',
    'large headers': `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(70_000)}\r\nContent-Length: 2\r\n\r\nok`,
  }
  for (const [name, bytes] of Object.entries(responses)) {
    const { open } = await startBytes(t, (socket) => socket.end(bytes, 'latin1'))
    t.match(await open(), /^HTTP\/1\.1 502 Bad Gateway\r\n/, name)
  }
})

t.test('endless informational responses end', async (t) => {
  const { open } = await startBytes(t, (socket) => {
    const write = () => {
      while (socket.writable && socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)));
    }
    socket.on('drain', write)
    write()
  })
  const received = await open()
  t.match(received, /\r\n\r\nHTTP\/1\.1 502 Bad Gateway\r\n/)
  t.equal(received.match(/HTTP\/1\.1 100 Continue/g)?.length, 32)
})

t.test('informational responses are not stored for a viewer that does not read', async (t) => {
  const sent: number[] = []
  const open = (writableNeedDrain: boolean) =>
    ({
      req: { httpVersionMinor: 1 },
      socket: { writableNeedDrain },
      writeInformation: (status: number) => void sent.push(status),
      writeContinue: () => void sent.push(100),
    }) as unknown as ServerResponse
  const send = (statusCode: number, writableNeedDrain: boolean) =>
    forwardInformation({ statusCode, rawHeaders: [] } as unknown as InformationEvent, open(writableNeedDrain))
  send(103, false)
  send(103, true)
  // The viewer waits for it before it sends the body.
  send(100, true)
  t.same(sent, [103, 100])
})
