// boxwood federation: rotates the signing key of the identity issuer.
import type { Command } from 'commander'
import type { RotateFederationResponse } from '../../../shared/api/federation.ts'
import { openOperatorClient } from './operator-client.ts'
import { readConfig } from './read-config.ts'

export function addFederationCommand(program: Command, signal: AbortSignal): void {
  const federation = program
    .command('federation')
    .summary('rotate the key of the identity issuer')
    .description(
      'The identity issuer of the running coordinator, whose tokens boxes exchange for cloud roles.',
    )
  federation
    .command('rotate')
    .summary('use the next signing key')
    .description(
      'Signs new tokens with the next key, which has been published for at least 24 hours. Tokens of the previous key stay valid ' +
        'until they expire. The coordinator does this every 30 days by itself.',
    )
    .action(async () => {
      const client = await openOperatorClient(readConfig().dataDir, signal)
      const rotation = await client.send<RotateFederationResponse>('POST', '/operator/federation/rotate')
      if (!rotation.rotated) process.exitCode = 1
      process.stdout.write(`${formatRotation(rotation)}\n`)
    })
}

const formatRotation = ({ rotated, activeKeyId, nextKeyId, possibleAt }: RotateFederationResponse): string =>
  rotated
    ? `New tokens are signed with the key ${activeKeyId}. The next key is ${nextKeyId}. If another host serves the documents of the issuer, publish them again with \`box federation publish\`.`
    : `Nothing was changed. The next key ${nextKeyId} has to be published for 24 hours before it is used: try again at ${possibleAt}.`
