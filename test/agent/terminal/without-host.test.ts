// Where the terminal host was not compiled, the agent runs the pseudoterminals, and the sessions end with it.
process.env.TEST_TERMINALS = 'without-host'
await import('./session.test.ts')
await import('./flow-control.test.ts')
