// Usage: node build/chat.js BASE_URL whole|stream. Prints one JSON line a token.
import OpenAI from "openai";
import "./probability.js";

const [baseURL, mode] = process.argv.slice(2);
if (baseURL === undefined || (mode !== "whole" && mode !== "stream")) {
  throw new Error("usage: chat.js BASE_URL whole|stream");
}

const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const question = {
  model: "smollm2-135m",
  messages: [{ role: "user" as const, content: "Say hello." }],
  max_tokens: 8,
  temperature: 0,
  logprobs: true,
  top_logprobs: 2,
};

function print(logprobs: OpenAI.Chat.ChatCompletion.Choice["logprobs"] | undefined): void {
  for (const { token, logprob, probability, top_logprobs } of logprobs?.content ?? []) {
    const top = top_logprobs.map((other) => ({ logprob: other.logprob, probability: other.probability }));
    console.log(JSON.stringify({ token, logprob, probability, top }));
  }
}

if (mode === "stream") {
  for await (const chunk of await client.chat.completions.create({ ...question, stream: true })) {
    print(chunk.choices[0]?.logprobs);
  }
} else {
  const answer = await client.chat.completions.create(question);
  print(answer.choices[0]?.logprobs);
}
