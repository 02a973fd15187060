// Prompts to the real Codex.
import { toolCall } from '../../support/model-server/replies.ts'
import { testPrompts } from './test-prompts.ts'

testPrompts({
  provider: 'codex',
  runCommand: (cmd) => toolCall('exec_command', { cmd }),
  installPackage: null,
  signInHint: /codex login/,
  unknownModel: 'unknown-model',
  messages: { rejectedKey: /401.*Incorrect API key/, unknownModel: /unknown-model/ },
})
