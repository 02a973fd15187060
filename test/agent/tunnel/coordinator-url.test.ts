// The forms of the coordinator's URL, and the targets of connections to it.
import t from 'tap'
import { isCoordinatorUrl, toRequestTarget, toWebSocketUrl } from '../../../agent/tunnel/coordinator-url.ts'

t.test('accepts http, https and unix URLs', async (t) => {
  for (const url of ['http://127.0.0.1:7070', 'https://boxes.example.com/path', 'unix:/run/agent.sock'])
    t.ok(isCoordinatorUrl(url), url)
  for (const url of ['', 'ftp://a', 'http://', 'http://a?b', 'unix:', 'unix:relative', 'unix:/run/a:b'])
    t.notOk(isCoordinatorUrl(url), url)
})

t.test('connects WebSockets and requests to the same target', async (t) => {
  t.equal(toWebSocketUrl('http://127.0.0.1:7070', '/agent/tunnel'), 'ws://127.0.0.1:7070/agent/tunnel')
  t.equal(toWebSocketUrl('https://a.example/b', '/agent/tunnel'), 'wss://a.example/b/agent/tunnel')
  t.equal(toWebSocketUrl('unix:/run/agent.sock', '/agent/tunnel'), 'ws+unix:/run/agent.sock:/agent/tunnel')
  t.match(toRequestTarget('https://[::1]:8443/b', '/agent/transfers/x'), {
    protocol: 'https:',
    hostname: '::1',
    port: '8443',
    path: '/b/agent/transfers/x',
  })
  t.same(toRequestTarget('unix:/run/agent.sock', '/agent/transfers/x'), {
    protocol: 'http:',
    socketPath: '/run/agent.sock',
    path: '/agent/transfers/x',
  })
})
