// Links to ports of a box.
import { z } from 'zod'
import { allows, defineTool, type ToolFactory } from '../tool.ts'
import { boxField } from './fields.ts'

export const createSharePort: ToolFactory = (grants) =>
  allows(grants, 'write')
    ? defineTool({
        name: 'share_port',
        title: 'Share a port',
        description: grants.canSharePublicly
          ? 'Creates a link to a port of a box, for browsers. A port has one link: another audience replaces it.'
          : 'Creates a link to a port of a box, for the browsers of members of the workspace.',
        inputSchema: z.strictObject({
          box: boxField,
          port: z.number().int().min(1).max(65_535),
          audience: (grants.canSharePublicly ? z.enum(['members', 'anyone', 'public']) : z.enum(['members']))
            .optional()
            .describe('Default: members'),
          rewriteHost: z.boolean().optional().describe('For servers that accept only localhost as Host'),
        }),
        outputSchema: z.object({
          box: z.string(),
          port: z.number(),
          url: z.string(),
          audience: z.string(),
          expiresAt: z.string().nullable(),
        }),
        annotations: {
          readOnlyHint: false,
          destructiveHint: false,
          idempotentHint: true,
          openWorldHint: true,
        },
        async run(context, { box: name, port, audience = 'members', rewriteHost }, { signal }) {
          const box = await context.findBox(name, { signal })
          const share = await box.ports.share(port, {
            audience,
            signal,
            ...(rewriteHost !== undefined && { rewriteHost }),
          })
          // The secret of an earlier link for anyone is not known any more.
          const url = share.url ?? share.origin
          return {
            text: `Port ${port} of box ${box.name} is open for ${share.access} at ${url}.`,
            data: { box: box.name, port, url, audience: share.access, expiresAt: share.expiresAt },
          }
        },
      })
    : null
