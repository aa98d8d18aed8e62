/** An OpenAI-compatible endpoint, as the operator set it. */
export type ModelSettings = Readonly<{
  /** `https://host/v1`, or the whole address of its chat completions. */
  url: string;
  model: string;
  key: string | undefined;
}>;
