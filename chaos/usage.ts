/** What a person or script asked for cannot be done as it was asked; told with the usage. Thrown before anything is done. */
export class Usage extends Error {}
