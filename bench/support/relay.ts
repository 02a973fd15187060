// A relay in a process of its own: copies the bytes of each connection to a port of this machine and back.
import { type AddressInfo, connect, createServer } from 'node:net'

const targetPort = Number(process.argv[2])
const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const target = connect({ port: targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  client.pipe(target).pipe(client)
  client.on('error', () => target.destroy())
  target.on('error', () => client.destroy())
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
// The benchmark has exited.
process.on('disconnect', () => process.exit())
