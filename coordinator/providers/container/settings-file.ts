// The file from which the init of a container reads the variables of the agent: agent/init/init.sh.

/** The variables are exported to the agent and not to its commands. */
export const formatSettings = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'\n`)
    .join('')
